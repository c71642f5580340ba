-- Estimate too high: with a foreign key all sales are taken for ones with a coupon, and a coupon is of the product's department anyway.
select c.department, c.percent, count(*) as sales, sum(s.amount) as amount
from coupons c
join sales s on s.coupon_id = c.coupon_id
join products t on t.product_id = s.product_id and t.department = c.department
where c.percent >= 20
group by c.department, c.percent
order by c.department, c.percent;
