-- Estimate too high: a coupon is taken for never null, and a third is assumed where columns of two tables are compared.
select t.department, count(*) as sales, max(s.sold_on) as last_sale
from products t
join sales s on s.product_id = t.product_id
join coupons c on c.coupon_id = s.coupon_id
join people p on p.person_id = s.person_id
where t.ended_on is not null
  and t.launched_on < date '2018-01-01'
  and s.sold_on > t.ended_on
  and c.valid_from < t.ended_on
  and p.joined_on < t.launched_on
group by t.department
order by t.department;
