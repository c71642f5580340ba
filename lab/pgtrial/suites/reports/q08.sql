-- Which share of the market of a region does a nation have with one kind of part, by year?
select extract(year from p.purchased_on) as year,
       round(
           100 * sum(case when sn.nation = 'Meridia' then l.price * (1 - l.discount) else 0 end)
               / sum(l.price * (1 - l.discount)),
           4
       ) as percent
from parts t
join lines l on l.part_id = t.part_id
join suppliers s on s.supplier_id = l.supplier_id
join nations sn on sn.nation_id = s.nation_id
join purchases p on p.purchase_id = l.purchase_id
join buyers b on b.buyer_id = p.buyer_id
join nations bn on bn.nation_id = b.nation_id
join regions r on r.region_id = bn.region_id
where t.kind in ('garden/pro', 'garden/plus')
  and r.region = 'Highland'
  and p.purchased_on between date '2019-01-01' and date '2022-12-31'
group by year
order by year;
