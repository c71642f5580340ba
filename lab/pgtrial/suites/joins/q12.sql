-- Groups too many: a category is of one department, and a province of one country.
select t.department, t.category, pl.country, pl.province, count(*) as sales, sum(s.amount) as amount
from sales s
join products t on t.product_id = s.product_id
join people p on p.person_id = s.person_id
join places pl on pl.place_id = p.place_id
where s.channel = 'web'
  and s.sold_on >= date '2021-01-01'
group by t.department, t.category, pl.country, pl.province
having count(*) > 5
order by sales desc, t.category, pl.province
limit 100;
